/** Lists of checksums, as `sha256sum -c` reads them. */

export interface Sum {
  readonly file: string
  /** SHA-256 in hexadecimal. */
  readonly digest: string
}

/** Renders a line for each file, in this order. */
export const renderSums = (sums: readonly Sum[]): string =>
  sums.map(({ file, digest }) => `${digest}  ${file}\n`).join('')

/** Parses such lines; others are ignored. */
export const parseSums = (text: string): readonly Sum[] =>
  text.split('\n').flatMap((line) => {
    const [, digest = '', file] = /^([0-9a-f]{64}) [ *](\S+)$/.exec(line) ?? []
    return file === undefined ? [] : [{ file, digest }]
  })

/** Updates `old` with `anew`, and sorts all by name. */
export function mergeSums(old: readonly Sum[], anew: readonly Sum[]): readonly Sum[] {
  const all = new Map([...old, ...anew].map((sum) => [sum.file, sum]))
  return [...all.values()].toSorted((a, b) => (a.file < b.file ? -1 : 1))
}
