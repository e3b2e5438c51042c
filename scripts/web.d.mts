export function isWebBuilt(): boolean;
export function markWebBuilt(): void;
export function provideWeb(): void;
