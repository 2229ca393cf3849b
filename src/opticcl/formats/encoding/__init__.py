"""Encodings that several formats share: protocol buffers, FlatBuffers, streamed JSON, XML elements, compressed text."""
