"""Stand-ins for a DataFrame or a Series that is read row by row; pandas answers what they do not
know."""

import numpy as np
import pandas as pd


class StandIn(np.lib.mixins.NDArrayOperatorsMixin):
    """In place of `_real`, an object of `_pandas`, which answers whatever is not defined below."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        column = name in self._places and not hasattr(self._pandas, name)
        return self[name] if column else getattr(self._real, name)

    def _look_up(self):
        for name in ("iloc", "iat", "loc", "at"):
            setattr(self, name, Lookup(self, name))

    def __array__(self, dtype=None, copy=None):
        return np.array(self._real, dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        real = [each._real if isinstance(each, StandIn) else each for each in inputs]
        return getattr(ufunc, method)(*real, **options)

    def __getitem__(self, key):
        return self._real[key]

    def __contains__(self, key):
        return key in self._real

    def __iter__(self):
        return iter(self._real)

    def __len__(self):
        return len(self._real)


class Lookup:
    """.iloc, .iat, .loc or .at: one row, or one value of it."""

    def __init__(self, of, name):
        self.of, self.name, self.index, self.by_place = of, name, of._real.index, name[0] == "i"
        # Of a label that occurs twice, pandas gives all rows: in a sorted table, it finds them.
        self.table = of._real
        self.unique = self.by_place or self.index.is_unique
        if name == "loc" and not (self.unique or self.index.is_monotonic_increasing):
            try:
                self.table = of._real.sort_index(kind="stable")
            except TypeError:  # labels that cannot be sorted
                pass

    def __getitem__(self, key):
        row, column = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        place = None
        single = isinstance(row, (int, np.integer)) or (isinstance(row, str) and not self.by_place)
        if single and self.unique:
            place = range(len(self.index))[row] if self.by_place else self.index.get_loc(row)
        if isinstance(place, int) and isinstance(column, (str, int, type(None))):
            return self.of._pick(place, column, self.by_place)
        return getattr(self.table if single else self.of._real, self.name)[key]


class Column(StandIn):
    """In place of a Series."""

    _pandas = pd.Series

    def __init__(self, series):
        self._real, self._places = series, {}
        self._array = np.empty(len(series), object)
        if isinstance(series.dtype, np.dtype) and series.dtype.kind not in "mM":
            self._array = series.to_numpy()
        else:
            self._array[:] = list(series)  # each value as pandas gives it
        self.values = series.values
        self._look_up()

    def _pick(self, place, column, by_place):
        return self._array[place]

    def __getitem__(self, key):
        by_place = isinstance(key, (int, np.integer)) and isinstance(
            self._real.index, pd.RangeIndex
        )
        return self.loc[key] if by_place else self._real[key]


class Row(StandIn):
    """In place of the Series of a row."""

    _pandas = pd.Series

    def __init__(self, frame, place):
        self._frame, self._place, self._places = frame, place, frame._places

    @property
    def _real(self):
        return self._frame._real.iloc[self._place]

    def __getitem__(self, name):
        frame = self._frame
        try:
            at = self._places[name]
        except (KeyError, TypeError):  # several of them, for one
            return self._real[name]
        if frame._matrix is None:
            return frame._arrays[at][self._place]
        return frame._matrix[self._place, at]

    def to_numpy(self, dtype=None, copy=True):
        values = self._frame._row(self._place)
        return values if dtype is None else values.astype(dtype)

    values = property(to_numpy)
    __array__ = to_numpy

    def __iter__(self):
        return iter(self.to_numpy().tolist())


class Columns(StandIn):
    """In place of a DataFrame: its columns, as arrays."""

    _pandas = pd.DataFrame

    def __init__(self, frame):
        self._real, self._places = frame, {}
        if (
            frame.columns.is_unique and frame.columns.nlevels == frame.index.nlevels == 1
        ):  # else pandas answers all
            self._places = {name: place for place, name in enumerate(frame.columns)}
            self._fields = [Column(frame.iloc[:, at]) for at in range(len(self._places))]
            self._arrays = [field._array for field in self._fields]
            # The values of a row are all of one type: that of its Series.
            self._matrix = (
                None if frame.iloc[:0].to_numpy().dtype.kind in "OmM" else frame.to_numpy(copy=True)
            )
            self._look_up()

    def _row(self, place):
        if self._matrix is not None:
            return self._matrix[place].copy()
        values = np.empty(len(self._arrays), object)
        values[:] = [array[place] for array in self._arrays]
        return values

    def _pick(self, place, column, by_place):
        if column is None:
            return Row(self, place)
        return self._arrays[column if by_place else self._places[column]][place]

    def __getitem__(self, key):
        at = self._places.get(key) if isinstance(key, (str, int)) else None
        return self._real[key] if at is None else self._fields[at]


def stand_in(data):
    return Columns(data) if data.ndim == 2 else Column(data)
