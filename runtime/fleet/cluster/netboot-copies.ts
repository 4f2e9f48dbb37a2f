/** Has what is missing of the live systems copied: one copy at a time, beside everything else, and again after a failure. */
import { Fault, renderError } from '#kit/foundation/fault.ts'
import type { BootFolder } from '#fleet/boot/boot-files.ts'
import { copyNetboot, type NetbootSource, type OpenSharedFile } from './netboot-copy.ts'
import type { createNetbootFiles } from './netboot-files.ts'
import { isSilent, type MemberRow } from './rules/member.ts'
import {
  listChoices,
  listMissing,
  renderVersions,
  type LocalNetboot,
  type NetbootRow,
  type SharedNetboot,
} from './rules/shared-netboot.ts'

/** Milliseconds after a failed copy. */
const RETRY_MS = 15_000

export interface CopiesOptions {
  readonly bootFiles: Pick<BootFolder, 'dir' | 'sets' | 'list' | 'stage' | 'install'>
  readonly openFile: OpenSharedFile
  readonly files: ReturnType<typeof createNetbootFiles>
  keep(): number
  refresh(): Promise<void>
  readonly log: { info(message: string): void; warn(message: string): void }
}

interface CopyRun extends Omit<Parameters<typeof copyNetboot>[1], 'keep'> {
  readonly version: string
}

interface WantedCopy {
  readonly row: NetbootRow
  readonly wanted: SharedNetboot | null
  readonly local: LocalNetboot
  readonly ownId: string
  readonly members: readonly MemberRow[]
  readonly holder: string
}

export function createCopies({ bootFiles, openFile, keep, log, files, refresh }: CopiesOptions) {
  let running: {
    readonly version: string
    readonly ending: AbortController
    readonly ended: Promise<void>
  } | null = null
  let [trouble, failed, retryAt] = ['', '', 0]

  function fail(version: string, why: string): void {
    if (why !== trouble)
      log.warn(`the live system of the fleet is not here yet: ${why}. What is here stays.`)
    ;[trouble, failed, retryAt] = [why, version, performance.now() + RETRY_MS]
  }

  async function run({
    version,
    wanted,
    missing,
    choices,
    sources,
    signal,
  }: CopyRun): Promise<void> {
    const order = { wanted, missing, choices, sources, keep: keep(), signal }
    try {
      await copyNetboot({ bootFiles, openFile }, order)
      await files.trust(missing)
      const names = sources.map(({ name }) => name).join(' or ')
      const from = missing.length === 0 ? '' : `, ${missing.length} files from ${names}`
      log.info(`machines boot ${renderVersions(wanted)} here as well${from}`)
      trouble = ''
    } catch (thrown) {
      if (!signal.aborted) fail(version, renderError(thrown))
    }
    // The next exchange decides by this; a reading under way may have begun before the end.
    await refresh()
    await refresh()
  }

  async function stop(): Promise<void> {
    running?.ending.abort(new Fault('cancelled', 'another live system is wanted'))
    await running?.ended
  }

  function isTime(version: string): boolean {
    if (running !== null && running.version !== version) void stop()
    return running === null && (failed !== version || performance.now() >= retryAt)
  }

  return {
    begin({ row, wanted, local, ownId, members, holder }: WantedCopy): void {
      const { version } = row
      if (wanted === null || !isTime(version)) return
      const [missing, choices] = [listMissing(wanted, local), listChoices(wanted, local)]
      // New files have to rest before they count.
      if (missing.length === 0 && Object.keys(choices).length === 0) return
      const sources = listSources(row, { ownId, members, holder })
      if (sources.length === 0 && missing.length > 0) {
        const versions = renderVersions(wanted)
        return fail(
          version,
          `no other server that is here has all files of ${versions}; fetch that release or use another one on the Netboot page`,
        )
      }
      const ending = new AbortController()
      const { signal } = ending
      const ended = run({ version, wanted, missing, choices, sources, signal }).finally(() => {
        running = null
      })
      running = { version, ending, ended }
    },
    settle() {
      ;[trouble, failed] = ['', '']
    },
    trouble: () => trouble,
    stop,
  }
}

function listSources(
  { version }: NetbootRow,
  { ownId, members, holder }: Pick<WantedCopy, 'ownId' | 'members' | 'holder'>,
): readonly NetbootSource[] {
  const having = members.filter(
    (each) =>
      each.id !== ownId &&
      each.url !== '' &&
      each.facts.netboot.version === version &&
      !isSilent(each),
  )
  return having.toSorted((one, two) => Number(two.name === holder) - Number(one.name === holder))
}
