/** What the terminal UI asks of the services; each is loaded when it is first needed. */
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import { type FlashOrder, WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { renderError } from '#kit/foundation/fault.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { Flasher } from '#engine/flash/flasher.ts'
import type { Environment } from '#kit/host/shell.ts'
import { listImages } from '#engine/image/image-folder.ts'
import type { Checked, ChosenFlash, PaneImage, PaneList } from './flow.ts'

export interface TuiServices {
  listImages(): Promise<PaneList<PaneImage>>
  /** Shows twice where udev did not know a disk's content: first without it. */
  listDisks(show: (listing: PaneList<SurveyedDisk>) => void): Promise<void>
  /** Writes nothing. */
  check(choice: ChosenFlash, signal: AbortSignal): Promise<Checked>
  loadFlasher(): Promise<Flasher>
  /** Null: notified; otherwise why not. */
  sendDone(): Promise<string | null>
}

/** As long as the deployed clients wait. */
const DONE_TIMEOUT_MS = 10_000

export function createTuiServices(options: {
  readonly env: Environment
  readonly isRoot: boolean
  readonly signal: AbortSignal
  /** Unused with a server. */
  readonly imageRoot: string
  /** `http://host:port`; null: standalone. */
  readonly server: string | null
  readonly mac: Mac | null
}): TuiServices {
  const { env, isRoot, signal, imageRoot, server, mac } = options
  const loadDisks = once(async () => {
    const { openOfferedDisks } = await import('#engine/disk/disks.ts')
    return openOfferedDisks(env)
  })
  const loadFlasher = once(async () => {
    const { createFlasher } = await import('#engine/flash/flasher.ts')
    return createFlasher({ env, isRoot })
  })
  return {
    loadFlasher,
    listImages: () => (server === null ? listLocal(imageRoot) : listServed(server, env, signal)),
    async listDisks(show) {
      try {
        const { survey, fill } = await loadDisks()
        const disks = await survey()
        show({ rows: disks, trouble: null })
        show({ rows: await Promise.all(disks.map(fill)), trouble: null })
      } catch (thrown) {
        show({ rows: null, trouble: `The disks cannot be listed: ${renderError(thrown)}.` })
      }
    },
    async check(choice, until) {
      const { survey, fill } = await loadDisks()
      try {
        const flasher = await loadFlasher()
        await using planned = await flasher.plan(orderFor(choice), until)
        const [findings = null] = planned.disks
        const found = (await survey()).find(({ path }) => path === choice.disk.path)
        const disk = found === undefined ? choice.disk : await fill(found)
        return { findings, reasons: findings?.plan.ok === false ? findings.plan.refusal : [], disk }
      } catch (thrown) {
        return { findings: null, reasons: [renderError(thrown)], disk: choice.disk }
      }
    },
    async sendDone() {
      if (server === null || mac === null) return null
      const { createServerClient } = await import('#flasher/link/server-client.ts')
      const token = env['FLASHER_PXE_TOKEN'] || null
      const link = { base: server, mac, token, env, signal, timeoutMs: DONE_TIMEOUT_MS }
      const answer = await createServerClient(link).sendDone()
      return answer.ok ? null : answer.refusal.reason
    },
  }
}

/** Everything is read back; the target is a whole disk; the image stays as it is, byte for byte. */
export const orderFor = ({ image, disk }: ChosenFlash): FlashOrder => ({
  image: image.location,
  format: image.format,
  targets: [{ path: disk.path, chosen: disk.device.identity }],
  options: WHOLE_DISK,
})

async function listLocal(root: string): Promise<PaneList<PaneImage>> {
  try {
    const rows = (await listImages(root)).map(({ name, path, format, size_bytes }) => ({
      name,
      // A path, whatever its name is.
      location: path.startsWith('/') ? path : `./${path}`,
      format,
      sizeBytes: size_bytes,
    }))
    return { rows, trouble: null }
  } catch (thrown) {
    return { rows: null, trouble: `The images cannot be listed: ${renderError(thrown)}.` }
  }
}

async function listServed(
  base: string,
  env: Environment,
  signal: AbortSignal,
): Promise<PaneList<PaneImage>> {
  const { fetchServedImages } = await import('#flasher/link/server-client.ts')
  const images = await fetchServedImages(base, { env, signal })
  if (!images.ok) {
    const trouble = `The images cannot be listed: ${images.refusal}. Press r to try again.`
    return { rows: null, trouble }
  }
  const rows = images.value.map(({ url, ...image }) => ({ ...image, location: url }))
  return { rows, trouble: null }
}

function once<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let loaded: Promise<Value> | null = null
  return () => (loaded ??= load())
}
