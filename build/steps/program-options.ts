/** The options of a program that a step starts: each has a value, and one error names all that are missing. */

/** An option of `parseArgs` with a value. */
export const TEXT = { type: 'string', default: '' } as const

/**
 * Returns the values when each option has one.
 *
 * @param optional may be missing.
 * @throws {Error} Options are missing, which it names all.
 */
export function requireOptions<Values extends Readonly<Record<string, string>>>(
  values: Values,
  optional: readonly (keyof Values & string)[] = [],
): Values {
  const left: readonly string[] = optional
  const missing = Object.entries(values).filter(
    ([name, value]) => value === '' && !left.includes(name),
  )
  if (missing.length === 0) return values
  throw new Error(`these options are missing: ${missing.map(([name]) => `--${name}`).join(' ')}`)
}
