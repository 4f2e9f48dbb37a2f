/**
 * Loaded ahead of uvu, which keeps quiet about why a suite's preparation failed, and prints other failures
 * when the suite is over: this prints both at once. Compiled code is kept for the next process.
 */
import { enableCompileCache, registerHooks } from 'node:module'

enableCompileCache()

const UVU = import.meta.resolve('uvu')
const SUITES = import.meta.resolve('./suites.ts')

registerHooks({
  resolve(specifier, context, nextResolve) {
    const found = nextResolve(specifier, context)
    const isForTests = found.url === UVU && context.parentURL !== SUITES && !isUvus(context)
    return isForTests ? { ...found, url: SUITES, format: 'module-typescript' } : found
  },
})

/** uvu's own files use it as it is. */
function isUvus({ parentURL = '' }: { readonly parentURL?: string | undefined }): boolean {
  return parentURL.startsWith(new URL('..', UVU).href)
}
