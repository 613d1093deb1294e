"""bertviz's views, drawn by bertviz itself, and figures that can be dragged: all without internet."""

from utils.views.draw import head_view, model_view, neuron_view
from utils.views.explore import explore
from utils.views.figures import attention_in_the_plane
from utils.views.page import View

__all__ = ["View", "attention_in_the_plane", "explore", "head_view", "model_view", "neuron_view"]
