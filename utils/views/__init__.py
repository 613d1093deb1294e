"""bertviz's head, model and neuron view, drawn by bertviz itself, without internet. Used from notebook 03 on."""

from utils.views.draw import head_view, model_view, neuron_view
from utils.views.explore import explore
from utils.views.page import View

__all__ = ["View", "explore", "head_view", "model_view", "neuron_view"]
