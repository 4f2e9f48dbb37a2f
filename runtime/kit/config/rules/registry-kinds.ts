/** Kinds of settings that name registries. */
import { parseOrasRepository } from '../../net/registry/rules/oras.ts'
import { line, textual } from './setting-kinds.ts'

/** A repository below which images are stored, or nothing. */
export const repository = textual(
  line.refine((given) => given === '' || parseOrasRepository(given) !== null),
  'a repository like oras://registry.example.org/captures, without a tag',
  'oras://registry.example.org/captures',
)
