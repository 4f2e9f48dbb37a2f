/** The cache key of a step: the same key means the same outcome. */
import { createHash } from 'node:crypto'
import type { Step } from '#build/steps/step.ts'

/** Changes when the cache's own layout does. */
const LAYOUT = 1

interface KeyFacts {
  readonly step: Step
  /** Digest of each input, in the order of `step.inputs`. */
  readonly digests: readonly string[]
  /** Node's version: it runs the programs, and its zlib decides bytes. */
  readonly node: string
}

/** Computes the key of a step, 32 hexadecimal digits. */
export function keyOf({ step, digests, node }: KeyFacts): string {
  const { name, argv, env = {}, makes, inputs } = step
  const facts = { layout: LAYOUT, name, argv, env, makes, inputs, digests, node }
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 32)
}

/**
 * Returns the step whose folder holds a path: `squashfs` for `@squashfs/root.squashfs`. Null stands
 * for paths in the checkout.
 */
export const ownerOf = (path: string): string | null => /^@([a-z0-9_-]+)/.exec(path)?.[1] ?? null

/** Replaces every `@step` and `%cache` in a word by its folder. */
export const resolveWord = (word: string, folderOf: (token: string) => string): string =>
  word.replaceAll(/^[@%][a-z0-9_-]+|(?<==)[@%][a-z0-9_-]+/g, (token) => folderOf(token))

/** Returns the shared folder that a step locks while it runs; null when it uses none. */
export const sharedFolder = ({ argv }: Step): string | null =>
  argv.map((word) => /(?:^|=)%([a-z0-9_-]+)/.exec(word)?.[1]).find((name) => name !== undefined) ??
  null
