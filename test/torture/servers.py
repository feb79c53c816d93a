"""The two servers of a run: a primary, and a standby that takes its place.

080_torture.pl makes and starts them, and stops them in the end.
"""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

START_TIMEOUT = 60      # seconds
NO_SPACE = 'No space left on device'

# Settings for clients are for the consumers, not for what is started here.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith('PG')}


def run(*command):
    return subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)


def run_or_fail(*command):
    result = run(*command)
    if result.returncode:
        raise RuntimeError(f'{" ".join(command)}: {result.stderr}')


def parent(pid):
    """None when there is no such process, not even one that has ended and
    whose parent hasn't noticed: the server takes that for a running one.
    """
    try:
        text = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return None
    return int(text.rpartition(')')[2].split()[1])


def children(pid):
    processes = [int(path.name) for path in Path('/proc').glob('[0-9]*')]
    return [process for process in processes if parent(process) == pid]


class Server:
    def __init__(self, data, host, port, log):
        self.data = os.path.realpath(data)
        self.host = host
        self.port = port
        self.log = log
        disks = os.environ.get('SEQINBOX_SMALL_DISKS')
        self.disk = None    # the small disk that the data is on
        if disks and self.data.startswith(disks):
            self.disk = Path(self.data).parent

    def control(self, *arguments):
        """pg_ctl, as the first argument of run() or run_or_fail()."""
        return ['pg_ctl', '-s', '-w', '-t', str(START_TIMEOUT),
                '-D', self.data, '-l', self.log, *arguments]

    def is_accepting(self):
        return run('pg_isready', '-h', self.host,
                   '-p', self.port).returncode == 0

    def keep_up(self):
        """Waits for the server, and starts it if it has ended."""
        end = time.monotonic() + START_TIMEOUT
        while not self.is_accepting():
            if time.monotonic() > end:
                raise TimeoutError(f'no server on port {self.port}')
            if run(*self.control('status')).returncode:
                run(*self.control('start'))
            time.sleep(0.1)

    def kill(self):
        """Kills all of its processes.  The postmaster is stopped before, so
        that it can start no more: such a backend would wait for ever for what
        the others had locked, and its client for the backend.
        """
        with open(f'{self.data}/postmaster.pid') as file:
            postmaster = int(file.readline())
        os.kill(postmaster, signal.SIGSTOP)
        pids = [postmaster, *children(postmaster)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(parent(pid) is not None for pid in pids):
            time.sleep(0.01)

    def promote(self):
        run_or_fail(*self.control('promote'))

    def follow(self, primary):
        """Begins anew as the standby of another one."""
        shutil.rmtree(self.data)
        os.mkdir(self.data, 0o700)
        run_or_fail('pg_basebackup', '-D', self.data, '-R', '-X', 'stream',
                    '-c', 'fast', '-d',
                    f'host={primary.host} port={primary.port}')
        with open(f'{self.data}/postgresql.conf', 'a') as file:
            file.write(f'port = {self.port}\n')
        run_or_fail(*self.control('start'))


class FullDisk:
    """No space on the small disk of a server, until it is freed."""

    def __init__(self, server):
        self.server = server
        self.filler = server.disk / 'filler'
        self.log = open(server.log, errors='replace')
        self.log.seek(0, os.SEEK_END)
        self.noticed = False

    def fill(self):
        """To be called now and then, as the server frees space as well."""
        with open(self.filler, 'ab', buffering=0) as file:
            with contextlib.suppress(OSError):
                size = os.fstat(file.fileno()).st_size
                space = os.statvfs(self.server.disk)
                os.posix_fallocate(file.fileno(), size,
                                   space.f_bavail * space.f_frsize)
            fill_up(file)
        self.noticed = self.noticed or NO_SPACE in self.log.read()

    def free(self):
        self.log.close()
        self.filler.unlink()
        self.server.keep_up()


def fill_up(file):
    """Writes until there is no space."""
    file.seek(0, os.SEEK_END)
    try:
        while True:
            file.write(bytes(4096))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


class Pair:
    def __init__(self, primary, standby):
        self.primary = primary
        self.standby = standby

    def logs(self):
        return [self.primary.log, self.standby.log]

    def fail_over(self):
        """The standby takes over; the old primary becomes the new standby."""
        self.primary.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary
        self.standby.follow(self.primary)
