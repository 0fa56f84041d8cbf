"""Charts as inline SVG: lines, points in a plane, and matrices. What they look like is the page's CSS."""

from cfbench_core.reports.charts.heat import heat_map
from cfbench_core.reports.charts.line import Series, line_chart
from cfbench_core.reports.charts.scatter import Point, scatter_chart

__all__ = ["Point", "Series", "heat_map", "line_chart", "scatter_chart"]
