/** The texts of a form by the names of its fields. */

/** Makes a record with a value for each name: `mapNames(['a', 'b'], f)` is `{ a: f('a'), b: f('b') }`. */
export const mapNames = <const Name extends string, Value>(
  names: readonly Name[],
  valueOf: (name: Name) => Value,
): Readonly<Record<Name, Value>> =>
  // `fromEntries` forgets which names there are.
  Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<Name, Value>
