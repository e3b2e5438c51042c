/** What servers.mjs answers, for tests that are written in TypeScript. */
export function findPostgres(): string | undefined;
export function findMariadb(): { readonly server: string; readonly initialise: string } | undefined;
export function findGalera(): string | undefined;
export function findFaketime(): string | undefined;
export function onPath(program: string): string | undefined;
export function provideServers(): void;
export function providePostgres(major: string): void;
export function isCi(): boolean;
export const VERSITYGW: string;
export function findVersitygw(): string | undefined;
export function buildVersitygw(): void;
