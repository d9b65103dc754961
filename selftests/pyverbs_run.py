#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
pyverbs_run.py FOLDER [rdma-core's options: --dev NAME --gid N] : rdma-core's own test suite, from FOLDER, one line
for each test:

    pass NAME
    skip NAME: REASON
    fail NAME: REASON

The tests of other vendors' features are left out. A test that hangs or kills its process is a failed test, and the
rest is run by a new process.
"""
import faulthandler
import os
import subprocess
import sys
import unittest

SECONDS_PER_TEST = 60
FOREIGN = ('mlx5', 'test_efa', 'Efa', 'cuda', 'irdma')


def load(folder):
    sys.path.insert(0, folder)
    from args_parser import parser  # rdma-core's, reads sys.argv
    import importlib.util
    spec = importlib.util.spec_from_file_location('tests', os.path.join(folder, '__init__.py'),
                                                  submodule_search_locations=[folder])
    tests = importlib.util.module_from_spec(spec)
    sys.modules['tests'] = tests
    spec.loader.exec_module(tests)
    parser.parse_args()
    return flatten(unittest.defaultTestLoader.loadTestsFromModule(tests))


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        print('start', test.id(), flush=True)
        faulthandler.dump_traceback_later(SECONDS_PER_TEST, exit=True)

    def say(self, word, test, reason=''):
        faulthandler.cancel_dump_traceback_later()
        reason = ' '.join(str(reason).split())
        print(f'{word} {test.id()}' + (f': {reason}' if reason else ''), flush=True)

    def addSuccess(self, test):
        self.say('pass', test)

    def addSkip(self, test, reason):
        self.say('skip', test, reason)

    def addFailure(self, test, err):
        self.say('fail', test, f'{err[0].__name__}: {err[1]}')

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err:
            self.say('fail', test, f'{subtest}: {err[1]}')


def child(folder, wanted):
    todo = [t for t in load(folder) if not any(word in t.id() for word in FOREIGN)]
    if wanted == ['list']:
        print('\n'.join(t.id() for t in todo))
        return
    unittest.TestSuite(t for t in todo if t.id() in wanted).run(Result())


def spawn(folder, options, wanted):
    return subprocess.Popen([sys.executable, __file__, folder] + options, text=True, stdout=subprocess.PIPE,
                            env=dict(os.environ, PYVERBS_RUN=' '.join(wanted)), stderr=subprocess.DEVNULL)


def main():
    folder, options = sys.argv[1], sys.argv[2:]
    if 'PYVERBS_RUN' in os.environ:
        sys.argv[1:] = options
        child(folder, os.environ['PYVERBS_RUN'].split())
        return
    todo = spawn(folder, options, ['list']).communicate()[0].split()
    while todo:
        process, running = spawn(folder, options, todo), None
        for line in process.stdout:
            word, name = line.split(':')[0].split()[:2] if line.strip() else ('', '')
            if word == 'start':
                running = name
            elif word in ('pass', 'skip', 'fail'):
                print(line, end='', flush=True)
                running = None
                # a test with several failing parts is still one
                if name in todo:
                    todo.remove(name)
        process.wait()
        if running:
            print(f'fail {running}: the process ended with status {process.returncode}', flush=True)
            todo.remove(running)
        elif todo:
            # nothing was running and not all is done: what is left cannot be run
            for name in todo:
                print(f'skip {name}: not run')
            todo = []


if __name__ == '__main__':
    main()
