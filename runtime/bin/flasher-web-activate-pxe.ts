/** Starts `flasher-web-activate-pxe`, the privileged helper of the earlier line's server. */
import { pxeHelper } from '#server/earlier/pxe-helper-program.ts'
import { leave, openProcess } from './open-process.ts'

await leave(await pxeHelper(openProcess('flasher-web-activate-pxe')))
