/** Kernel command lines: rendered for the live system, and parsed by it from /proc/cmdline. */
import { Fault } from '#kit/foundation/fault.ts'

/** Null: a flag (`gpt`). */
export type KernelArg = readonly [name: string, value: string | null]

/** The limit of x86 and arm64 kernels. */
const MAX_CHARACTERS = 2047

/** Nothing that ends a word, or is expanded, for the kernel or iPXE. */
const VALUE = /^[\w.~:/?=&%@,+[\]-]+$/
const NAME = /^[a-z][\w.-]*$/i

/** Values are made or checked before; throws a Fault for one that could be misread. */
export function renderKernelArgs(args: readonly KernelArg[]): string {
  const line = args.map(renderArg).join(' ')
  if (line.length > MAX_CHARACTERS) {
    throw new Fault('misuse', `a kernel command line of ${line.length} characters is too long`)
  }
  return line
}

/** The last argument of a name wins; flags are empty. Quotes work as for the kernel. */
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
