/** Writes milestones to the kernel's log, the system's console and the status file; all best effort. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { printable } from '#kit/foundation/printable.ts'

export type Marks = ReturnType<typeof createMarks>

interface MarksOptions {
  readonly kmsg?: string
  readonly console?: string
  readonly status: string
}

/** Priority `info`. */
const KERNEL_PREFIX = '<6>'

/** Creates a writer of milestones; `status` is the path of the status file. It never rejects. */
export function createMarks(options: MarksOptions) {
  const { kmsg = '/dev/kmsg', console = '/dev/console', status } = options
  const toStatus = (line: string) => append(status, `${line}\n`, constants.O_CREAT)
  return {
    /** Into the kernel's log, on the system's console (the live system's shows no log), and the status file. */
    async mark(text: string) {
      const line = lineOf(text)
      await append(kmsg, `${KERNEL_PREFIX}${line}\n`)
      await append(console, `\r\n${line}\r\n`)
      await toStatus(line)
    },
    /** Into the status file alone, which every console without a bar of its own shows. */
    status: (text: string) => toStatus(lineOf(text)),
  }
}

/** For programs outside a live system, which must not write into the kernel's log. */
export const NO_MARKS: Marks = {
  mark: async () => {},
  status: async () => {},
}

const lineOf = (text: string) => `flasher: ${printable(text).slice(0, 400)}`

/** A console whose other end is stopped takes nothing; that must hold up nothing here. */
async function append(path: string, text: string, more = 0): Promise<void> {
  const { O_WRONLY, O_APPEND, O_NOCTTY, O_NONBLOCK } = constants
  try {
    await using file = await open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | more, 0o644)
    await file.write(text)
  } catch {
    // Not there, not ours, or full: a milestone less.
  }
}
