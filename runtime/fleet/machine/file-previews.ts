/** Keeps what previews of files have shown, so that exactly that is done when somebody confirms one. */
import { createHash } from 'node:crypto'

export type FilePreviews<Change> = ReturnType<typeof createFilePreviews<Change>>

/** What one person was shown. */
interface KeptPreview<Change> {
  readonly actor: string
  readonly changes: readonly Change[]
  readonly characters: number
}

const MAX_PREVIEWS = 32
/** Characters of all previews together. */
const MAX_CHARACTERS = 32 * 1024 * 1024

/** Creates the memory of previews; the oldest ones go where there are too many, and a restart forgets them. */
export function createFilePreviews<Change>() {
  const kept = new Map<string, KeptPreview<Change>>()

  function makeRoom(): void {
    let characters = [...kept.values()].reduce((sum, each) => sum + each.characters, 0)
    for (const [digest, preview] of kept) {
      // The newest one always has room: a file is bounded before it is read.
      const fits = kept.size <= MAX_PREVIEWS && characters <= MAX_CHARACTERS
      if (fits || kept.size === 1) return
      characters -= preview.characters
      kept.delete(digest)
    }
  }

  return {
    /** Returns the digest of the changes and of who was shown them, by which they are found again. */
    keep(actor: string, changes: readonly Change[]): string {
      const text = JSON.stringify([actor, changes])
      const digest = createHash('sha256').update(text).digest('hex')
      kept.delete(digest)
      kept.set(digest, { actor, changes, characters: text.length })
      makeRoom()
      return digest
    },
    /** Null: there is none any more, or it was shown to somebody else. Whoever takes it has it once. */
    take(actor: string, digest: string): readonly Change[] | null {
      const found = kept.get(digest)
      if (found === undefined || found.actor !== actor) return null
      kept.delete(digest)
      return found.changes
    },
  }
}
