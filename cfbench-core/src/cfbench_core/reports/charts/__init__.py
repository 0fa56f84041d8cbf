"""Charts as inline SVG: lines, dots over categories, points in a plane, bars, matrices, trees.

What they look like is the page's CSS.
"""

from cfbench_core.reports.charts.bar import Bar, bar_chart
from cfbench_core.reports.charts.dots import dot_chart
from cfbench_core.reports.charts.heat import heat_map
from cfbench_core.reports.charts.line import Series, line_chart
from cfbench_core.reports.charts.parallel import Axis, ParallelLine, parallel_axes
from cfbench_core.reports.charts.scatter import Point, scatter_chart
from cfbench_core.reports.charts.tree import Node, tree_chart

__all__ = [
    "Axis",
    "Bar",
    "Node",
    "ParallelLine",
    "Point",
    "Series",
    "bar_chart",
    "dot_chart",
    "heat_map",
    "line_chart",
    "parallel_axes",
    "scatter_chart",
    "tree_chart",
]
