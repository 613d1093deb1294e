"""Reference implementations of the series: one module per notebook, each class the one its notebook builds."""
