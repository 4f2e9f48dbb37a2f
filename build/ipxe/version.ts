/** Which iPXE a source tree is, by its Makefile. */

const PARTS = ['MAJOR', 'MINOR', 'PATCH'] as const

/** `1.21.1` where the text of `src/Makefile` tells it; else `unknown`. */
export function parseVersion(makefile: string): string {
  const parts = PARTS.map(
    (part) => new RegExp(`^VERSION_${part}\\s*:?=\\s*(\\d+)\\s*$`, 'm').exec(makefile)?.[1],
  )
  return parts.includes(undefined) ? 'unknown' : parts.join('.')
}
