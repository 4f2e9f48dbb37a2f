/** `flasher` without a command: the wizard, alone or driven by a server ("Wizard command line"). */
import { parseArguments, renderMisuse } from '../../../core/arguments.ts'
import type { CommandLine } from '../../../core/command.ts'
import { createLog } from '../../../terminal/log.ts'
import { decideLook } from '../../../terminal/look.ts'
import type { Desk } from './desk.ts'
import { openDesk } from './open-desk.ts'
import { WIZARD } from './options.ts'
import type { Hooks, Start } from './start.ts'
import { runWizard } from './wizard.ts'
import type { World } from './world.ts'

const SUCCESS = 0
const MISUSED = 2

/** Only what reads the arguments: help is the whole program's. */
const LINE: CommandLine = {
  program: 'flasher',
  summary: WIZARD.summary,
  about: [],
  commands: [],
  main: WIZARD,
  exitCodes: [],
  environment: [],
  files: [],
  revised: '',
}

/** Returns the exit code. */
export async function wizard(world: World): Promise<number> {
  const { env, argv, stdin, stdout, stderr } = world
  const log = createLog({ program: 'flasher', stderr, look: decideLook(env, stderr.isTTY) })
  const reading = parseArguments(LINE, argv)
  if (!reading.ok) {
    log.fail(renderMisuse(reading.refusal), '"flasher --help" says what there is.')
    return MISUSED
  }
  if (!stdin.isTTY || !stdout.isTTY) {
    log.fail('the wizard needs a terminal', WITHOUT_TERMINAL)
    return MISUSED
  }
  const given = readFlags(reading.value.kind === 'run' ? reading.value.argv : [])
  const desk = await openDesk(world, given.get('mac') ?? null)
  try {
    const beginning = await begin(given, desk)
    if (beginning.kind === 'exit') return beginning.code
    const { start, hooks } = beginning
    await runWizard(start, takeOver(desk, start, hooks))
    return SUCCESS
  } finally {
    desk.painter.leave()
  }
}

const WITHOUT_TERMINAL = 'Without one: "flasher flash --image IMAGE --target DISK --yes".'

/** From the unambiguous spelling that `parseArguments` gives. */
const readFlags = (argv: readonly string[]): ReadonlyMap<string, string> =>
  new Map(
    argv.flatMap((word) => {
      const [, name, value] = /^--([a-z]+)=(.*)$/s.exec(word) ?? []
      return name === undefined || value === undefined ? [] : [[name, value] as const]
    }),
  )

type Beginning =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'interactive'; readonly start: Start; readonly hooks: Hooks | null }

async function begin(given: ReadonlyMap<string, string>, desk: Desk): Promise<Beginning> {
  const mac = given.get('mac')
  if (mac === undefined) return beginAlone(given.get('catalog') ?? null, desk)
  const [{ drive }, { createStage }, parts] = await Promise.all([
    import('./remote.ts'),
    import('./stage.ts'),
    desk.loadRemote(),
  ])
  const server = given.get('server') ?? WIZARD.flags[0].value.default
  return drive(createStage(desk, server), { mac, server }, parts)
}

async function beginAlone(catalog: string | null, desk: Desk): Promise<Beginning> {
  // What cannot be listed is said on the screen of the images.
  const hasImages = (await desk.listLocal().catch(() => [])).length > 0
  const screen = catalog !== null || hasImages ? 'image' : 'catalog'
  const notice = desk.isRoot ? null : 'Without root, disks can be looked at but not written.'
  const { identity } = desk.drawing.setting
  return { kind: 'interactive', start: { screen, catalog, notice, identity }, hooks: null }
}

/** A server may have told more of this machine than it knew itself, and hears of its flashes. */
const takeOver = (desk: Desk, { identity }: Start, hooks: Hooks | null): Desk => ({
  ...desk,
  drawing: { ...desk.drawing, setting: { ...desk.drawing.setting, identity } },
  ...(hooks === null ? {} : { loadHooks: () => Promise.resolve(hooks) }),
})
