/** Lists of checksums, as `sha256sum -c` reads them. */

export interface Sum {
  readonly file: string
  /** SHA-256 in hexadecimal. */
  readonly digest: string
}

export const renderSums = (sums: readonly Sum[]): string =>
  sums.map(({ file, digest }) => `${digest}  ${file}\n`).join('')

/** Other lines are ignored. */
export const parseSums = (text: string): readonly Sum[] =>
  text.split('\n').flatMap((line) => {
    const [, digest = '', file] = /^([0-9a-f]{64}) [ *](\S+)$/.exec(line) ?? []
    return file === undefined ? [] : [{ file, digest }]
  })

/** `old` updated with `anew`, sorted by name. */
export function mergeSums(old: readonly Sum[], anew: readonly Sum[]): readonly Sum[] {
  const all = new Map([...old, ...anew].map((sum) => [sum.file, sum]))
  return [...all.values()].toSorted((a, b) => (a.file < b.file ? -1 : 1))
}
