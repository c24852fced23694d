"""Metrics: small pure functions, and a registry that names them."""

from tomewise.evaluate.metrics.named_metrics import Metric, default_metrics, metric_named, metric_names, remember_metric

__all__ = ["Metric", "default_metrics", "metric_named", "metric_names", "remember_metric"]
