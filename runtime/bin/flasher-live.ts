/** `flasher-live`: what the live system starts on each of its consoles. Started through flasher-live.mjs. */
import { live } from '../lines/current/wizard/live/live.ts'
import { leave, openProcess } from './server-process.ts'

const {
  argv: _argv,
  onHangup: _onHangup,
  systemDir: _systemDir,
  ...environment
} = openProcess('flasher')
await leave(
  await live({
    ...environment,
    async wizard(argv, env) {
      const { wizard } = await import('../lines/current/wizard/program.ts')
      const { arch } = process
      return await wizard({ ...environment, argv, env, arch, now: () => performance.now() / 1000 })
    },
  }),
)
