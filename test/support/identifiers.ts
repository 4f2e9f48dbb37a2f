/** The names that code uses: those of its types, and all others, without comments, texts and wire names. */

const NOT_CODE = /\/\*[^]*?\*\/|\/\/.*|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g

/** The names in a source; a name with `_` is the wire's, unless it is a constant, and one behind a `-` is HTML's. */
export function listNames(source: string): ReadonlySet<string> {
  const code = source.replaceAll(NOT_CODE, (text) =>
    // What stands in the holes of a template is code.
    text.startsWith('`') ? (text.match(/\$\{[^}]*\}/g) ?? []).join(' ') : ' ',
  )
  return new Set(code.match(/(?<!\w-)\b[A-Za-z]\w*/g)?.filter(isOurs) ?? [])
}

const isOurs = (name: string) => !name.includes('_') || name === name.toUpperCase()

/** The words of a name in lower case: `readFrameMap` has read, frame and map. */
export const wordsOf = (name: string): readonly string[] =>
  name
    .split('_')
    .flatMap((part) => part.match(/[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])/g) ?? [])
    .map((word) => word.toLowerCase())

/** The types that a source declares. */
export const listTypes = (source: string): readonly string[] =>
  [...source.matchAll(/^(?:export )?(?:interface|type|class) (\w+)/gm)].map(([, name = '']) => name)
