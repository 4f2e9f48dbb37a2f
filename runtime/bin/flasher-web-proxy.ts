/** Starts `flasher-web-proxy`, which runs as root and answers network boots beside a DHCP server. */
import { proxyProgram } from '#server/current/netboot/proxy-program.ts'
import { leave, openProcess } from './open-process.ts'

await leave(await proxyProgram(openProcess('flasher-web-proxy', ['SIGINT', 'SIGTERM', 'SIGHUP'])))
