/** Wraps paragraphs into lines. */

/** Breaks at blanks so that no line is wider than `width`; a longer word stays whole. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line]
}

/** Two columns: names of one width on the left, wrapped texts on the right. */
export function wrapColumns(
  rows: readonly (readonly [name: string, text: string])[],
  width: number,
): readonly string[] {
  const left = Math.min(26, Math.max(0, ...rows.map(([name]) => name.length))) + 4
  return rows.flatMap(([name, text]) => {
    const [first = '', ...rest] = wrap(text, Math.max(24, width - left))
    const head = `  ${name}`
    const tail = rest.map((line) => `${' '.repeat(left)}${line}`)
    return head.length + 2 > left
      ? [head, `${' '.repeat(left)}${first}`, ...tail]
      : [`${head.padEnd(left)}${first}`, ...tail]
  })
}
