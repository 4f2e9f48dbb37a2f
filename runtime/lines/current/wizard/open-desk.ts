/** The wizard's desk: its terminal now, and services that are loaded when a screen first needs them. */
import { decideDefaultCatalog } from '../../../core/catalog-source.ts'
import { resolveImageRoot } from '../../../core/image.ts'
import { findOwnCard } from '../../../services/host.ts'
import { listImages } from '../../../services/image-folder.ts'
import { readVersion } from '../../../services/manifest.ts'
import { ask } from '../../../terminal/ask.ts'
import { encodeFor, encodeOutput } from '../../../terminal/encoding.ts'
import { createInk } from '../../../terminal/ink.ts'
import { decideLook } from '../../../terminal/look.ts'
import { createPainter } from '../../../terminal/painter.ts'
import type { Desk } from './desk.ts'
import type { RemoteParts } from './remote-box.ts'
import type { World } from './world.ts'

/** `mac`: as it was told; null: that of this machine's first network card is shown. */
export async function openDesk(world: World, mac: string | null): Promise<Desk> {
  const { env, stdin, stdout, isRoot, signal, now } = world
  const look = decideLook(env, stdout.isTTY)
  const out = encodeOutput(stdout, env)
  const painter = createPainter(stdout, encodeFor(env))
  const imageRoot = resolveImageRoot(null, env)
  const card = findOwnCard(mac?.toLowerCase().replaceAll('-', ':') ?? null)
  const identity = { ...card, server: null }
  const setting = { version: await readVersion(), identity, imageRoot }
  const loops = parseLoops(env['FLASHER_OFFER_LOOP'] ?? '')
  const remoteWorld = { ...world, now: () => now() * 1000, loops: loops !== 'none' }
  const loadFlash = once(async () => {
    const [{ createParts, lookAtImage, planOrder }, { followCourse }] = await Promise.all([
      import('./parts.ts'),
      import('./flash-course.ts'),
    ])
    return { parts: createParts(env), lookAtImage, planOrder, followCourse }
  })
  return {
    stdin,
    stdout: out,
    look,
    painter,
    drawing: { setting, ink: createInk(look), unicode: look.unicode },
    signal,
    isRoot,
    now,
    defaultCatalog: decideDefaultCatalog({
      named: env['FLASHER_DEFAULT_CATALOG'],
      kernel: undefined,
      releaseBaseUrl: env['FLASHER_RELEASES_BASE_URL'],
    }),
    reboot: env['FLASHER_LIVE'] === '1' ? () => restart(env) : null,
    ask(subject) {
      painter.forget()
      return ask(subject, { stdin, stdout: out, look, painter }, signal)
    },
    listLocal: () => listImages(imageRoot),
    async loadCatalog(source, until) {
      const { createCatalogSources } = await import('../../../services/catalog-sources.ts')
      return createCatalogSources({ env })(source, until)
    },
    async loadHooks() {
      const { createStandaloneHooks } = await import('./remote-parts.ts')
      return createStandaloneHooks(remoteWorld)
    },
    async loadRemote(): Promise<RemoteParts> {
      const { createRemoteParts } = await import('./remote-parts.ts')
      return createRemoteParts(remoteWorld)
    },
    async surveyDisks() {
      const { parts } = await loadFlash()
      const found = await parts.disks.survey({ loops: loops !== 'none' })
      return found.filter(({ path, device }) => device.type !== 'loop' || isOffered(loops, path))
    },
    loadFlash,
  }
}

/** `FLASHER_OFFER_LOOP`: all loop devices, or the named ones, separated by blanks. */
type Loops = 'none' | 'all' | readonly string[]

function parseLoops(text: string): Loops {
  if (text === '' || text === '0') return 'none'
  return text === '1' ? 'all' : text.split(' ')
}

const isOffered = (loops: Loops, path: string) => loops === 'all' || loops.includes(path)

async function restart(env: World['env']) {
  const [{ createPower }, { createShell }] = await Promise.all([
    import('../../../services/power.ts'),
    import('../../../services/shell.ts'),
  ])
  return createPower({ shell: createShell({ env }) }).reboot()
}

function once<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let loaded: Promise<Value> | null = null
  return () => (loaded ??= load())
}
