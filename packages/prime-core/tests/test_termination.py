"""SIGTERM and SIGHUP as orderly ends, in programs of their own."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from programs import end, line, run, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals here")

GUARDED = """
    import asyncio, signal, sys
    from prime_core.termination import CancelOnTermination, ExitOnTermination

    async def main():
        guard = CancelOnTermination()
        guard.enter()
        try:
            print("ready")
            await asyncio.sleep(30)
        finally:
            print("cleaned up")
            guard.leave()

    def work():
        guard = ExitOnTermination()
        guard.enter()
        try:
            print("ready")
            signal.pause()
        finally:
            print("cleaned up")
            guard.leave()

    asyncio.run(main()) if sys.argv[1] == "async" else work()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_signal_is_an_orderly_end_where_it_is_guarded(kind: str, number: signal.Signals) -> None:
    process = start(GUARDED, kind)
    assert line(process) == "ready"
    process.send_signal(number)
    done = end(process)
    assert (done.code, done.out) == (128 + number, "cleaned up"), done.err


def test_an_inner_guard_leaves_the_outer_one_and_the_outer_one_the_default_handler() -> None:
    process = start("""
        import asyncio, signal, time
        from prime_core.termination import CancelOnTermination

        async def main():
            outer, inner = CancelOnTermination(), CancelOnTermination()
            outer.enter()
            inner.enter()
            inner.leave()
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
            outer.leave()

        asyncio.run(main())
        for number in (signal.SIGTERM, signal.SIGHUP):
            assert signal.getsignal(number) is signal.SIG_DFL
        print("ready")
        time.sleep(30)
    """)
    assert line(process) == "ready"
    process.send_signal(signal.SIGTERM)
    assert end(process).code == -signal.SIGTERM


def test_a_guard_does_not_replace_a_handler_of_the_users() -> None:
    done = run("""
        import asyncio, os, signal
        from prime_core.termination import CancelOnTermination, ExitOnTermination

        signal.signal(signal.SIGTERM, lambda *_: print("mine"))

        async def main():
            for guard in (CancelOnTermination(), ExitOnTermination()):
                guard.enter()
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(0.05)
                guard.leave()

        asyncio.run(main())
        os.kill(os.getpid(), signal.SIGTERM)
    """)
    assert (done.code, done.out) == (0, "mine\nmine\nmine"), done.err


@pytest.mark.parametrize("kind", ["CancelOnTermination", "ExitOnTermination"])
@pytest.mark.parametrize("handler", ["SIG_DFL", "SIG_IGN"])
def test_a_guard_outside_the_main_thread_says_what_it_cant_do(kind: str, handler: str) -> None:
    done = run(
        """
        import asyncio, signal, sys, threading, warnings
        import prime_core.termination

        async def main():
            guard = getattr(prime_core.termination, sys.argv[1])()
            guard.enter()
            guard.leave()

        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, getattr(signal, sys.argv[2]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            thread = threading.Thread(target=asyncio.run, args=(main(),))
            thread.start()
            thread.join()
        assert signal.getsignal(signal.SIGTERM) is getattr(signal, sys.argv[2])
        print([each.category.__name__ for each in caught if "main thread" in str(each.message)])
        """,
        kind,
        handler,
    )
    wanted = "['RuntimeWarning']" if handler == "SIG_DFL" else "[]"
    assert (done.code, done.out, done.err) == (0, wanted, "")


def test_a_guard_in_the_main_thread_is_there_for_those_of_other_threads() -> None:
    done = run("""
        import asyncio, threading, warnings
        from prime_core.termination import CancelOnTermination, ExitOnTermination

        warnings.simplefilter("error")
        outer = ExitOnTermination()
        outer.enter()

        async def main():
            guard = CancelOnTermination()
            guard.enter()
            guard.leave()
            print("quiet")

        thread = threading.Thread(target=asyncio.run, args=(main(),))
        thread.start()
        thread.join()
        outer.leave()
    """)
    assert (done.code, done.out, done.err) == (0, "quiet", "")


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_that_cuts_the_clean_up_short_leaves_the_exit_code_of_a_signal(
    second: signal.Signals,
) -> None:
    process = start("""
        import asyncio, atexit
        from prime_core.termination import CancelOnTermination

        async def main():
            guard = CancelOnTermination()
            guard.enter()
            try:
                print("ready")
                await asyncio.sleep(30)
            finally:
                try:
                    print("cleaning up")
                    await asyncio.sleep(30)
                except BaseException:
                    guard.leave(finished=False)
                    raise

        atexit.register(print, "the rest is cleaned up")
        asyncio.run(main())
    """)
    assert line(process) == "ready"
    process.send_signal(signal.SIGTERM)
    assert line(process) == "cleaning up"
    process.send_signal(second)
    done = end(process)
    assert (done.code, done.out) == (128 + second, "the rest is cleaned up"), done.err


def test_after_a_clean_up_that_was_cut_short_a_signal_still_ends_the_program_in_order() -> None:
    process = start("""
        import asyncio, atexit, time
        from prime_core.termination import CancelOnTermination

        async def main():
            guard = CancelOnTermination()
            guard.enter()
            guard.leave(finished=False)

        atexit.register(print, "the rest is cleaned up")
        asyncio.run(main())
        print("ready")
        time.sleep(30)
    """)
    assert line(process) == "ready"
    process.send_signal(signal.SIGTERM)
    done = end(process)
    assert (done.code, done.out) == (128 + signal.SIGTERM, "the rest is cleaned up"), done.err


def test_the_last_clean_up_is_not_cut_short_by_a_signal() -> None:
    process = start("""
        import time
        from prime_core.termination import ignore_termination

        ignore_termination()
        print("ready")
        time.sleep(0.5)
        print("to its end")
    """)
    assert line(process) == "ready"
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGHUP)
    done = end(process)
    assert (done.code, done.out) == (0, "to its end"), done.err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_ended_by_a_signal_and_its_parent_does_not_hear_of_it() -> None:
    done = run("""
        import asyncio, os, signal, time
        from prime_core.termination import CancelOnTermination

        async def main():
            guard = CancelOnTermination()
            guard.enter()
            forked, told = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(told, b"!")
                time.sleep(20)
                os._exit(0)
            os.read(forked, 1)
            os.kill(child, signal.SIGTERM)
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            await asyncio.sleep(0.1)
            print("the child", os.waitstatus_to_exitcode(status), "the parent goes on")
            guard.leave()

        asyncio.run(main())
    """)
    assert (done.code, done.out) == (0, "the child -15 the parent goes on"), done.err
