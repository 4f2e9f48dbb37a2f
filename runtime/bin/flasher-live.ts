/** `flasher-live`: what the live system starts on each of its consoles. Started through flasher-live.mjs. */
import { live } from '../lines/current/wizard/live/live.ts'
import { flasher } from './flasher-program.ts'
import { leave, openProcess } from './open-process.ts'

const environment = openProcess('flasher')
const { arch } = process
const now = () => performance.now() / 1000
await leave(
  await live({
    ...environment,
    wizard: (argv, env) => flasher({ ...environment, argv, env, arch, now }),
  }),
)
