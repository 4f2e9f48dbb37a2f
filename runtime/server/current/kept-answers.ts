/** Keeps each machine's newest answer: it is rendered anew only where something in it has changed. */
import type { Mac } from '../../kit/net/rules/mac.ts'

interface KeptAnswer<T> {
  readonly inputs: readonly unknown[]
  readonly answer: T
}

/** Some kilobytes each; a larger fleet does without for a moment. */
const MAX_KEPT = 10_000

/** `inputs`: everything that `render` reads. An object among them counts as changed when it is another one. */
export function createKeptAnswers<T>() {
  const kept = new Map<Mac, KeptAnswer<T>>()
  return (mac: Mac, inputs: readonly unknown[], render: () => T): T => {
    const known = kept.get(mac)
    if (known !== undefined && isSame(known.inputs, inputs)) return known.answer
    const answer = render()
    if (kept.size >= MAX_KEPT) kept.clear()
    kept.set(mac, { inputs, answer })
    return answer
  }
}

const isSame = (a: readonly unknown[], b: readonly unknown[]) =>
  a.length === b.length && a.every((input, at) => input === b[at])
