/** The version of an iPXE source tree, by its Makefile. */

const PARTS = ['MAJOR', 'MINOR', 'PATCH'] as const

/**
 * Finds the version, such as `1.21.1`, in the text of `src/Makefile`; `unknown` where it has none.
 */
export function parseVersion(makefile: string): string {
  const parts = PARTS.map(
    (part) => new RegExp(`^VERSION_${part}\\s*:?=\\s*(\\d+)\\s*$`, 'm').exec(makefile)?.[1],
  )
  return parts.includes(undefined) ? 'unknown' : parts.join('.')
}
