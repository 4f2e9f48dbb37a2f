/** Zeroes ranges of a device by command: one small child, fed ranges as they are found. */
import { createInterface } from 'node:readline'
import type { Range } from '../core/extents.ts'
import type { ZeroMethod } from '../core/zeros.ts'
import type { Shell } from './shell.ts'

export interface Zeroer extends AsyncDisposable {
  /** True when the device now reads back zeros there; false when it would not do it. */
  zero(range: Range): Promise<boolean>
}

/**
 * Reads `offset length` lines and answers each with the command's exit code. The device is opened
 * anew by each command, which an exclusive open by us allows (blkdiscard's own check is off: -f).
 */
const COMMANDS: Readonly<Record<Exclude<ZeroMethod, 'write'>, string>> = {
  'zero-out': 'fallocate --punch-hole -o "$o" -l "$l" "$0"',
  discard: 'blkdiscard -f -o "$o" -l "$l" "$0"',
}

export function createZeroer(shell: Shell, node: string, method: ZeroMethod): Zeroer {
  if (method === 'write') {
    return { zero: () => Promise.resolve(false), [Symbol.asyncDispose]: () => Promise.resolve() }
  }
  const script = `while read -r o l; do ${COMMANDS[method]} 2>/dev/null; echo $?; done`
  const child = shell.pipe(['/bin/sh', '-c', script, node])
  const waiting: ((done: boolean) => void)[] = []
  const refuseAll = () => {
    for (const answer of waiting.splice(0)) answer(false)
  }
  const gone = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('close', () => resolve())
  })
  void gone.then(refuseAll)
  // A child that died is seen by `gone`; a write to its closed pipe says nothing more.
  child.stdin.on('error', refuseAll)
  createInterface({ input: child.stdout }).on('line', (code) => waiting.shift()?.(code === '0'))
  return {
    zero: ({ offset, bytes }) =>
      new Promise((resolve) => {
        if (child.exitCode !== null || !child.stdin.writable) return resolve(false)
        waiting.push(resolve)
        child.stdin.write(`${offset} ${bytes}\n`)
      }),
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await gone
    },
  }
}
