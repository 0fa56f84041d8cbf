"""Where components compute: the class of the device, the GPUs of a machine, and batches that fit into their memory.

``choice`` resolves ``device: auto`` when a run is planned, and ``availability`` checks that the machine has it; ``gpus``
finds GPUs and gives them to worker processes; ``cuda`` sets up a process that computes on one; ``batches`` divides work that
does not fit. See docs/adr/0030-devices.md. None of them imports torch before a task needs it, except ``availability`` for a
study on CUDA where no GPU is listed.
"""
