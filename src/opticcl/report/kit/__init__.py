"""Parts of all reports: columns, drawing, SVG, HTML, colours, wording of quantities."""
