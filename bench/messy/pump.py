"""Control of the pump."""

MAX_PRESSURE_BAR = 6.5  # above this the relief valve opens


def restart(delay_s: float = 40.0) -> None:
    """Start the pump again after a power cut; waits so that the well can refill."""
