/** SBAT: which generations of a component are revoked (github.com/rhboot/shim, SBAT.md). */

/** Component to generation. */
export type SbatEntries = Readonly<Record<string, number>>

const MAX_ENTRIES = 100

/** Of a program's section, or of the firmware's `SbatLevelRT`: `component,generation` and more, a line each. */
export function parseSbat(bytes: Buffer): SbatEntries {
  const lines = bytes.toString('latin1').split('\0', 1)[0]?.split('\n', MAX_ENTRIES) ?? []
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, component, generation] = /^([\w.-]{1,64}),(\d{1,9})(?:,|\s*$)/.exec(line) ?? []
      return component === undefined ? [] : [[component, Number(generation)] as const]
    }),
  )
}

/** Null: none is revoked; or it is no shim, and no other program asks. */
export const findRevoked = (program: SbatEntries, level: SbatEntries): string | null =>
  program['shim'] === undefined
    ? null
    : (Object.entries(program).find(
        ([component, generation]) => generation < (level[component] ?? 0),
      )?.[0] ?? null)
