"""Figures as people read them: three significant digits, a unit, thousands separated."""


def duration(seconds: float) -> str:
    """'27 µs', '1.32 ms', '4.10 s', '12 min 5 s', '3 h 20 min': three significant digits below a
    minute."""
    for limit, scale, unit in (
        (1e-6, 1e9, "ns"),
        (1e-3, 1e6, "µs"),
        (1.0, 1e3, "ms"),
        (59.95, 1.0, "s"),
    ):
        if seconds < limit * (0.9995 if unit != "s" else 1):
            return f"{three(seconds * scale)} {unit}"
    whole = round(min(seconds, 1e12))
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def us(microseconds: float) -> str:
    """A duration given in microseconds."""
    return duration(microseconds / 1e6)


def percent(share: float) -> str:
    """'49 %', '0.4 %', '< 0.1 %': a share of 1."""
    value = share * 100
    if 0 < value < 0.05:
        return "< 0.1 %"
    return f"{value:.1f} %" if 0 < value < 9.95 else f"{value:,.0f} %"


def times(factor: float, wide: bool | None = None) -> str:
    """'×0.21', '×1.8', '×24': a factor, with one decimal below 10 if its range is wide (by default
    from 2 on), else two."""
    if factor >= 1e6:
        return "over ×1,000,000"
    if factor >= 9.95:
        return f"×{factor:,.0f}"
    one = factor >= 1.95 if wide is None else wide and factor >= 0.95
    return f"×{factor:.1f}" if one else f"×{factor:.2f}"


def size(number: float) -> str:
    """'787 kB', '23.5 GB': bytes, decimal."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5:
            return f"{value:.0f} B" if unit == "B" else f"{three(value)} {unit}"
        value /= 1000
    return f"{three(value)} PB"


def count(number: float) -> str:
    """'1,280'."""
    return f"{number:,.0f}"


def figure(number: float) -> str:
    """'2.6', '124', '1,981': a rate, a ratio or a number of cores in three digits."""
    text = three(number)
    return text.rstrip("0").rstrip(".") if "." in text else text


def three(value: float) -> str:
    """'0.52', '12.4', '1,981': three significant digits, all of those before the point."""
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if magnitude else "0"
