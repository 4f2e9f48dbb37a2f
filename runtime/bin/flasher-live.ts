/** `flasher-live`: what the live system starts on each of its consoles. Started through flasher-live.mjs. */
import { live as earlier, readIsOrdered } from '../lines/earlier/live/live.ts'
import { live as current } from '../lines/current/wizard/live/live.ts'
import { flasher } from './flasher-program.ts'
import { leave, openProcess } from './open-process.ts'

const environment = openProcess('flasher')
const { arch } = process
const now = () => performance.now() / 1000

/** The server that booted the machine says on the kernel command line which line it is of. */
await leave(await ((await readIsOrdered()) ? startEarlier() : startCurrent()))

function startCurrent(): Promise<number> {
  return current({
    ...environment,
    wizard: (argv, env) => flasher({ ...environment, argv, env, arch, now }),
  })
}

async function startEarlier(): Promise<number> {
  const { cli, tui } = await import('../lines/earlier/programs.ts')
  return await earlier({
    ...environment,
    flasher: (argv, process) => cli({ ...environment, ...process, argv, now }),
    tui: (argv, opening) => tui({ ...environment, ...opening, argv, now }),
  })
}
