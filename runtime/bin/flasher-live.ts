/** `flasher-live`: what the live system starts on each of its consoles. Called by flasher-live.mjs. */
import { serveEarlierConsole as earlier, readIsOrdered } from '#flasher/order/live.ts'
import { serveCurrentConsole as current } from '#flasher/live-system/live-console.ts'
import { flasher } from './flasher-program.ts'
import { leave, openProcess } from './open-process.ts'

const { arch } = process
const now = () => performance.now() / 1000

/** The server that booted the machine says on the kernel command line which line it is of. */
export async function start(): Promise<void> {
  const environment = openProcess('flasher')
  const startLine = (await readIsOrdered()) ? startEarlier : startCurrent
  await leave(await startLine(environment))
}

type LiveProcess = ReturnType<typeof openProcess>

function startCurrent(environment: LiveProcess): Promise<number> {
  return current({
    ...environment,
    wizard: (argv, env) => flasher({ ...environment, argv, env, arch, now }),
  })
}

async function startEarlier(environment: LiveProcess): Promise<number> {
  const { tui } = await import('#flasher/programs.ts')
  const env = { ...environment.env, FLASHER_LIVE: '1' }
  return await earlier({
    ...environment,
    now,
    tui: (argv, opening) => tui({ ...environment, ...opening, env, argv, now }),
  })
}
