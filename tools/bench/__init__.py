"""What the packages cost: time, memory, connections and requests, beside the plain libraries.

Each row is a ratio, or a figure of its own where there is nothing to compare with. Nobody's
machine is quiet: compare rows of one run, not seconds of two. Time on the CPU is compared where
waiting would hide it, wall time where the waiting counts. A missed target fails nothing.

The two sides of a comparison take turns in processes that share one core; the stub server, or the
local platform, has another where the machine has two. All load goes to 127.0.0.1.

`stub_rows`, `platform_rows`, `job_rows`, `trace_rows` and `import_rows` hold the measures;
`creating`, `calling`, `platform_work`, `job_work` and `trace_work` are what runs in the measured
processes.
"""
