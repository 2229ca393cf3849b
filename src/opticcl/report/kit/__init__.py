"""What every report is made with: columns, SVG, HTML, colours, wording of quantities."""
