/** Lists the complete sets of the boot directory, without those whose initrd belongs to another system. */
import { join } from 'node:path'
import {
  listComplete,
  parseSetFile,
  renderForeign,
  setFileName,
  type BootRecord,
  type CompleteSet,
  type ForeignSet,
} from './rules/boot-set.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { listFolder, type FolderFile } from './boot-folder.ts'
import { createInitrdJudge } from './initrd-judge.ts'

export type BootSets = ReturnType<typeof createBootSets>

interface BootSetsDependencies {
  readonly dir: string
  onSetAside?(set: ForeignSet): void
}

/** Our own initrds take some milliseconds, another system's a second or two. */
const WAIT_MS = 2000
/** An installation waits for the result. */
const WAIT_STAGED_MS = 60_000

export function createBootSets({ dir, onSetAside }: BootSetsDependencies) {
  const judge = createInitrdJudge()
  let aside: readonly ForeignSet[] = []

  const find = ({ arch, version }: CompleteSet) =>
    aside.find((set) => set.arch === arch && set.version === version)

  function note(sets: readonly ForeignSet[]): void {
    const added = sets.filter((set) => find(set) === undefined)
    aside = sets
    for (const set of added) onSetAside?.(set)
  }

  return {
    /** Newest first. A set not judged in time waits for the next call, unless it was in force. */
    async choose(
      files: readonly FolderFile[],
      record: BootRecord,
    ): Promise<readonly CompleteSet[]> {
      const complete = listComplete(files.map(({ name }) => name))
      const byName = new Map(files.map((file) => [file.name, file]))
      const kindOf = (set: CompleteSet) => {
        const file = byName.get(initrdOf(set))
        return file === undefined ? null : judge.kindOf({ ...file, path: join(dir, file.name) })
      }
      if (complete.map(kindOf).includes(null)) await judge.settle(WAIT_MS)
      const judged = complete.map((set) => ({ set, kind: kindOf(set) }))
      note(
        judged
          .filter(({ kind }) => kind === 'foreign')
          .map(({ set }) => ({ ...set, reason: renderForeign(initrdOf(set)) })),
      )
      return judged
        .filter(({ set, kind }) =>
          kind === null ? record.active[set.arch] === set.version : kind !== 'foreign',
        )
        .map(({ set }) => set)
    },
    setAside: () => aside,
    /** Throws a Fault `conflict` for a set of another system. */
    check(set: CompleteSet): void {
      const found = find(set)
      if (found === undefined) return
      throw new Fault('conflict', `version ${set.version} cannot be used: ${found.reason}`, {
        hint: 'Fetch a release, or copy the files of one.',
      })
    },
    /** Throws a Fault `input-invalid` if the folder holds another system's initrd. */
    async checkStaged(folder: string) {
      for (const { name, ...facts } of await listFolder(folder)) {
        if (parseSetFile(name)?.part !== 'initrd') continue
        const file = { ...facts, path: join(folder, name) }
        judge.kindOf(file)
        await judge.settle(WAIT_STAGED_MS)
        if (judge.kindOf(file) !== 'foreign') continue
        throw new Fault('input-invalid', renderForeign(name), {
          hint: 'Nothing was changed. Check which release site and repository are set.',
        })
      }
    },
    [Symbol.asyncDispose]: () => judge[Symbol.asyncDispose](),
  }
}

const initrdOf = ({ arch, version }: CompleteSet) => setFileName({ arch, version, part: 'initrd' })
