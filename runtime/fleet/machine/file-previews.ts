/** Keeps what previews of files have shown, so that exactly that is done when somebody confirms one. */
import { createHash } from 'node:crypto'

export type FilePreviews<Change> = ReturnType<typeof createFilePreviews<Change>>

interface KeptPreview<Change> {
  readonly actor: string
  readonly changes: readonly Change[]
  readonly characters: number
}

const MAX_PREVIEWS = 32
const MAX_CHARACTERS = 32 * 1024 * 1024

/** The oldest previews go first; a restart forgets all. */
export function createFilePreviews<Change>() {
  const kept = new Map<string, KeptPreview<Change>>()

  function makeRoom(): void {
    let characters = [...kept.values()].reduce((sum, each) => sum + each.characters, 0)
    for (const [digest, preview] of kept) {
      // The newest one always fits: a file is bounded before it is read.
      const fits = kept.size <= MAX_PREVIEWS && characters <= MAX_CHARACTERS
      if (fits || kept.size === 1) return
      characters -= preview.characters
      kept.delete(digest)
    }
  }

  return {
    /** Returns the digest of the changes and of the person who saw them. */
    keep(actor: string, changes: readonly Change[]): string {
      const text = JSON.stringify([actor, changes])
      const digest = createHash('sha256').update(text).digest('hex')
      kept.delete(digest)
      kept.set(digest, { actor, changes, characters: text.length })
      makeRoom()
      return digest
    },
    /** Null: gone, or shown to somebody else. Can be taken once. */
    take(actor: string, digest: string): readonly Change[] | null {
      const found = kept.get(digest)
      if (found === undefined || found.actor !== actor) return null
      kept.delete(digest)
      return found.changes
    },
  }
}
