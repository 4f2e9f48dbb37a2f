/** A minute in which the newest edit of a machine can be undone, unless something has changed the machine since. */
import { randomBytes, createHash } from 'node:crypto'
import type { HardwareTree } from '#fleet/state/hardware-trees.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { Mac } from '#kit/net/rules/mac.ts'

interface MachineEdit<M> {
  readonly before: M
  /** Null: deleted. */
  readonly after: M | null
  /** The hardware tree that went with it; null: none, or too large to keep. */
  readonly hardware: HardwareTree | null
  readonly batch: string | null
  readonly actor: string
}

interface NotedEdit<M> extends MachineEdit<M> {
  /** A page undoes exactly the edit that it has shown. */
  readonly id: string
  /** Undoing it changes something; false if it only took an order away. */
  readonly bringsBack: boolean
  readonly at: number
}

export type UndoableEdits<M extends MachineBase> = ReturnType<typeof createUndoableEdits<M>>

const UNDO_MS = 60_000
/** Bytes of hardware trees of deleted machines. */
const MAX_HARDWARE_BYTES = 16 * 1024 * 1024

/** A restart forgets them. `elapsed`: milliseconds of a steady clock. */
export function createUndoableEdits<M extends MachineBase>(
  elapsed: () => number,
  bringsBack: (before: M, after: M | null) => boolean,
) {
  const edits = new Map<Mac, NotedEdit<M>>()
  let hardwareBytes = 0

  function forget(mac: Mac): void {
    hardwareBytes -= sizeOf(edits.get(mac)?.hardware ?? null)
    edits.delete(mac)
  }

  function sweep(): void {
    for (const [mac, { at }] of edits) {
      if (elapsed() - at < UNDO_MS) return
      forget(mac)
    }
  }

  return {
    /** `continues`: part of the edit before, which left what this one changed, in one batch. */
    note(edit: MachineEdit<M>, continues: boolean): void {
      sweep()
      const { mac } = edit.before
      const former = edits.get(mac)
      const isSame =
        continues &&
        former !== undefined &&
        former.batch === edit.batch &&
        isUnchanged(former.after, edit.before)
      forget(mac)
      const fits = hardwareBytes + sizeOf(edit.hardware) <= MAX_HARDWARE_BYTES
      const hardware = fits ? edit.hardware : null
      hardwareBytes += sizeOf(hardware)
      const before = isSame ? former.before : edit.before
      const id = randomBytes(6).toString('hex')
      const noted = { before, hardware, id, bringsBack: bringsBack(before, edit.after) }
      edits.set(mac, { ...edit, ...noted, at: elapsed() })
    },
    /** Null: none, or its minute is over. */
    find(mac: Mac): NotedEdit<M> | null {
      sweep()
      return edits.get(mac) ?? null
    },
    forget,
    /** Machines whose newest edit was part of this batch and can be undone. */
    listOf(batch: string): readonly Mac[] {
      sweep()
      return [...edits].flatMap(([mac, edit]) =>
        edit.batch === batch && edit.bringsBack ? [mac] : [],
      )
    },
  }
}

const sizeOf = (hardware: HardwareTree | null): number => hardware?.json.length ?? 0

/** When the machine was seen does not count. */
export function isUnchanged<M extends MachineBase>(after: M | null, present: M | null): boolean {
  if (after === null || present === null || after === present) return after === present
  const found = new Map<string, unknown>(Object.entries(present))
  const left = Object.entries(after)
  return (
    left.length === found.size &&
    left.every(([name, value]) => SEEN.has(name) || isSame(value, found.get(name)))
  )
}

const SEEN: ReadonlySet<string> = new Set(['last_seen_at', 'last_seen_ip'])

/** A record stored since shares most values with the one before. */
const isSame = (a: unknown, b: unknown): boolean =>
  a === b ||
  (typeof a === 'object' && typeof b === 'object' && JSON.stringify(a) === JSON.stringify(b))

// Keeps what previews of files have shown, so that exactly that is done when somebody confirms one.

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
