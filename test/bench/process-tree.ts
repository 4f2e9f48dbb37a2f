/** What a process and all its descendants have used so far, from /proc. */
import { readFileSync, readdirSync } from 'node:fs'

export interface ProcessUse {
  /** Ended children that were waited for are counted in. */
  readonly cpuSeconds: number
  readonly residentBytes: number
}

/** Linux counts CPU time in hundredths of a second for programs, on every architecture. */
const TICKS = 100
const PAGE_BYTES = 4096

export function readTreeUse(root: number): ProcessUse {
  const processes = new Map<number, ProcessUse & { readonly parent: number }>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      processes.set(Number(name), {
        parent: Number(fields[1]),
        cpuSeconds: fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS,
        residentBytes: Number(fields[21]) * PAGE_BYTES,
      })
    } catch {
      // It ended while we looked.
    }
  }
  const isOurs = (pid: number): boolean =>
    pid === root || (pid > 1 && isOurs(processes.get(pid)?.parent ?? 0))
  const ours = [...processes].flatMap(([pid, use]) => (isOurs(pid) ? [use] : []))
  return {
    cpuSeconds: ours.reduce((sum, use) => sum + use.cpuSeconds, 0),
    residentBytes: ours.reduce((sum, use) => sum + use.residentBytes, 0),
  }
}

/** Ends all descendants of a process, the innermost first; those that end meanwhile are no matter. */
export function endChildren(parent: number): void {
  let children: readonly number[] = []
  try {
    const text = readFileSync(`/proc/${parent}/task/${parent}/children`, 'latin1')
    children = text.split(' ').filter(Boolean).map(Number)
  } catch {
    return
  }
  for (const child of children) {
    endChildren(child)
    try {
      process.kill(child, 'SIGTERM')
    } catch {
      // It has ended.
    }
  }
}

/** The most memory that one process ever had, in MiB. */
export function readPeakMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024
}
