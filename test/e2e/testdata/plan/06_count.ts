const numbers: number[] = [1, 2];
return numbers.length as number;
