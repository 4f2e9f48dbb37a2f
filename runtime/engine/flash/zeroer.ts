/** Zeroes ranges of a device by command, in one small child process that gets ranges as they are found. */
import { createInterface } from 'node:readline'
import { createBusyMeter, type ZeroMethod } from './rules/zeros.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import type { Device } from '#engine/disk/device.ts'
import type { Shell } from '#kit/host/shell.ts'

export interface Zeroer extends AsyncDisposable {
  /** True when the device now reads back zeros there; false when it would not do it. */
  zero(range: Range): Promise<boolean>
  /** It was disposed of: a range is refused without asking the device. */
  readonly isClosed: boolean
  /** Bytes per second, measured on long runs only; null before the first of them. */
  readonly rate: number | null
}

/**
 * Reads `offset length` lines and answers each with the command's exit code. The device is opened
 * anew by each command, which an exclusive open by us allows (blkdiscard's own check is off: -f).
 */
const COMMANDS: Readonly<Record<Exclude<ZeroMethod, 'write'>, string>> = {
  'zero-out': 'fallocate --punch-hole -o "$o" -l "$l" "$0"',
  'zero-range': 'fallocate --zero-range -o "$o" -l "$l" "$0"',
  discard: 'blkdiscard -f -o "$o" -l "$l" "$0"',
}

/** A shorter run would measure only the start of the command. */
const MIN_MEASURED_RUN = 16 * 1024 * 1024
const now = () => performance.now() / 1000

interface ZeroJob {
  readonly range: Range
  readonly answer: (isZero: boolean) => void
}

export function createZeroer(
  shell: Shell,
  { node, fd }: Pick<Device, 'node' | 'fd'>,
  method: ZeroMethod,
): Zeroer {
  if (method === 'write') {
    let isWritingClosed = false
    return {
      zero: async () => false,
      rate: null,
      get isClosed() {
        return isWritingClosed
      },
      async [Symbol.asyncDispose]() {
        isWritingClosed = true
      },
    }
  }
  const script = `while read -r o l; do ${COMMANDS[method]} 2>/dev/null; echo $?; done`
  const child = shell.pipe(['/bin/sh', '-c', script, node], [fd])
  /** The first one is under way. */
  const jobs: ZeroJob[] = []
  const refuse = (refused: readonly ZeroJob[]) => {
    for (const { answer } of refused) answer(false)
  }
  const gone = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('close', () => resolve())
  })
  void gone.then(() => refuse(jobs.splice(0)))
  // A child that died is seen by `gone`; a write to its closed pipe says nothing more.
  child.stdin.on('error', () => undefined)

  // One at a time, so that after our end none is left to be read from the pipe.
  const speed = createBusyMeter()
  let startedAt = 0
  let isClosed = false
  function startFirst() {
    const [job] = jobs
    if (job === undefined) return
    startedAt = now()
    child.stdin.write(`${job.range.offset} ${job.range.bytes}\n`)
  }
  createInterface({ input: child.stdout }).on('line', (code) => {
    const job = jobs.shift()
    if (job !== undefined && job.range.bytes >= MIN_MEASURED_RUN) {
      speed.begin(startedAt)
      speed.end(now(), job.range.bytes)
    }
    job?.answer(code === '0')
    startFirst()
  })
  return {
    get isClosed() {
      return isClosed
    },
    get rate() {
      return speed.rate
    },
    zero: (range) =>
      new Promise((resolve) => {
        if (child.exitCode !== null || !child.stdin.writable) return resolve(false)
        jobs.push({ range, answer: resolve })
        if (jobs.length === 1) startFirst()
      }),
    async [Symbol.asyncDispose]() {
      isClosed = true
      refuse(jobs.splice(1))
      child.stdin.end()
      await gone
    },
  }
}
