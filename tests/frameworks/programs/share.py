"""A folder mounted as a network's are, old and unmappable: `share.py FOLDER PLACE` (fusepy)."""

import errno
import os
import sys

import fuse


def of(function):
    """The operation that does this to a path below the folder."""
    return lambda self, path, *given: function(self.at(path), *given)


class Share(fuse.Operations):
    mkdir, rmdir, unlink, chmod, readlink = map(
        of, (os.mkdir, os.rmdir, os.unlink, os.chmod, os.readlink)
    )

    def __init__(self, folder):
        self.folder = folder

    def at(self, path):
        return self.folder + path

    def getattr(self, path, fh=None):
        found = os.lstat(self.at(path))
        names = ("mode", "nlink", "uid", "gid", "size", "atime", "mtime", "ctime", "ino")
        return {f"st_{name}": getattr(found, f"st_{name}") for name in names}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self.at(path))]

    def create(self, path, mode, info):
        info.fh, info.direct_io = os.open(self.at(path), info.flags | os.O_CREAT, mode), 1
        return 0

    def open(self, path, info):
        info.fh, info.direct_io = os.open(self.at(path), info.flags), 1
        return 0

    def read(self, path, size, offset, info):
        return os.pread(info.fh, size, offset)

    def write(self, path, data, offset, info):
        return os.pwrite(info.fh, data, offset)

    def truncate(self, path, length, fh=None):
        os.truncate(self.at(path), length)

    def flush(self, path, info):
        return 0

    def release(self, path, info):
        return os.close(info.fh)

    def rename(self, old, new):
        os.rename(self.at(old), self.at(new))

    def symlink(self, name, target):
        os.symlink(target, self.at(name))

    def link(self, target, source):
        os.link(self.at(source), self.at(target))

    def utimens(self, path, times=None):
        os.utime(self.at(path), times)

    def lock(self, *arguments):
        raise fuse.FuseOSError(errno.ENOLCK)  # nobody may count on locks


if __name__ == "__main__":
    kept = {"attr_timeout": 3, "entry_timeout": 3, "ac_attr_timeout": 3}
    fuse.FUSE(Share(sys.argv[1]), sys.argv[2], foreground=True, raw_fi=True, nothreads=True, **kept)
