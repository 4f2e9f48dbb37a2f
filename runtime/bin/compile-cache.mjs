/**
 * Turns Node's compile cache on. The starters beside it are plain JavaScript, because Node loads its
 * type stripper for a program's first file before that can be done: 15 MB and half of the start-up time.
 */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { env, geteuid } from 'node:process'

// Never in a shared folder: what lies in the cache is run.
const home = env['XDG_CACHE_HOME'] || join(env['HOME'] ?? '/nonexistent', '.cache')
enableCompileCache(geteuid?.() === 0 ? '/var/cache/flasher' : join(home, 'flasher'))
