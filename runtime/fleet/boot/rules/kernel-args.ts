/** Kernel command lines: rendered for the live system, and parsed by it from /proc/cmdline. */
import { Fault } from '../../../kit/foundation/fault.ts'

/** A name and its value; null for a flag (`gpt`). */
export type KernelArg = readonly [name: string, value: string | null]

/** What x86 kernels take; arm64 ones take the same. */
const MAX_CHARACTERS = 2047

/** Nothing here ends a word, for the kernel or for iPXE, or is expanded by either. */
const VALUE = /^[\w.~:/?=&%@,+[\]-]+$/
const NAME = /^[a-z][\w.-]*$/i

/**
 * Renders arguments on one line. Values are made or checked before they come here, so for one that
 * could be read as anything but itself it throws a Fault.
 */
export function renderKernelArgs(args: readonly KernelArg[]): string {
  const line = args.map(renderArg).join(' ')
  if (line.length > MAX_CHARACTERS) {
    throw new Fault('misuse', `a kernel command line of ${line.length} characters is too long`)
  }
  return line
}

/**
 * Parses arguments by name, the last one winning; flags have an empty value. Quotes hold blanks
 * together as the kernel reads them: around a value or around the whole argument.
 */
export function parseKernelArgs(line: string): ReadonlyMap<string, string> {
  const args = new Map<string, string>()
  for (const [word] of line.trim().matchAll(/(?:"[^"]*"?|[^\s"])+/g)) {
    const text = word.startsWith('"') ? word.replaceAll('"', '') : word
    const [name = '', ...value] = text.split('=')
    if (name !== '') args.set(name, value.join('=').replaceAll('"', ''))
  }
  return args
}

function renderArg([name, value]: KernelArg): string {
  if (!NAME.test(name) || (value !== null && !VALUE.test(value))) {
    throw new Fault('misuse', `${JSON.stringify([name, value])} cannot be a kernel argument`)
  }
  return value === null ? name : `${name}=${value}`
}
